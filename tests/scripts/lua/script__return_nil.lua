-- value: null
return nil
