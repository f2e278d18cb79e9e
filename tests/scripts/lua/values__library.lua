-- error: runtime
-- message has: value is a library, which cannot leave the script
return string
