-- attack: raise tables that look like the prelude's own errors
-- error: runtime
-- message has: conversion
error({ conversion = {} })
-- next run
-- error: runtime
-- message has: conversion
error({ conversion = "value is a function", limit = "time", external = 1, stopped = true })
