# error: syntax
# line: 5
# message: Expected `,`, found `=`
x = (1,
y = 2
