-- task: revenue
return list.sum(pages(tools.list_orders, {status = "delivered"}), "total")

-- task: cheapest
return list.min_by(list.map(tools.list_products(), function(product)
  return list.min_by(product.variants, "price")
end), "price")
