-- value: null
undefined_name
