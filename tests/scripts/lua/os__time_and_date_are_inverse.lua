-- value: true
for _, moment in ipairs{ 0, 1, -1, 951827696, 1709208000, 1717200000, 4102444799, -2208988800, 253402300799 } do
  assert(os.time(os.date("*t", moment)) == moment, moment)
end
return true
