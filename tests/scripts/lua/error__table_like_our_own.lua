-- error: runtime
-- message has: {"conversion":{}}
error({ conversion = {} })
