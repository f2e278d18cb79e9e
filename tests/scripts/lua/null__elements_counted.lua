-- value: [3, 3, 2, 0, 3]
return { #json.decode('[1, null, 3]'), #json.decode('[1, 2, null]'), #json.decode('[null, null]'), #json.decode('[]'), rawlen(json.decode('[null, null, 3]')) }
