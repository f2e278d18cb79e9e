-- value: "yes"
if null then return "yes" else return "no" end
