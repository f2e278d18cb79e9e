-- value: "line 1\nline ]] 2"
return [==[
line 1
line ]] 2]==]
