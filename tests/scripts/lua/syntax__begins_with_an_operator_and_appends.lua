-- error: syntax
.. tostring({1}) .. (function() local t = {} t[#t + 1] = 1 return t end)()[1]
