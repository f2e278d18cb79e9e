-- value: true
return docs["parallel"]:find("list_of_functions", 1, true) ~= nil
