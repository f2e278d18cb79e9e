local worst = {failures = -1}
for _, service in ipairs(tools.list_services()) do
  local failures, counts = 0, {}
  for _, line in ipairs(tools.get_logs{service = service, hour = 3}) do
    if line.status >= 500 then
      failures = failures + 1
      counts[line.message] = (counts[line.message] or 0) + 1
    end
  end
  if failures > worst.failures then
    worst = {service = service, failures = failures, times = 0}
    for message, times in pairs(counts) do
      if times > worst.times then worst.message, worst.times = message, times end
    end
  end
end
return worst
