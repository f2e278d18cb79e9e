-- error: runtime
-- message has: value is a function
function() end
