count = 1
def double(x):
    return 2 * x
# next run
# value: 4
count += 1
double(count)
