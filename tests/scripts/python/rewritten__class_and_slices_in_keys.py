# value: ["ZeroDivisionError", "A", "A", "b", true]
class A:
    def name(self):
        return self.__class__.__name__

    def like(self):
        return self.__class__()


try:
    1 / 0
except Exception as e:
    kind = e.__class__.__name__
[kind, A().name(), A().like().name(), "a".__class__("b"), (1).__class__ is int]
# next run
# value: ["tuple", "slice", 1, 2]
class Grid:
    def __delitem__(self, key):
        self.key = key


grid, more = Grid(), [1, 2]
del grid[1:2, *more]
[type(grid.key).__name__, type(grid.key[0]).__name__, *grid.key[1:]]
