# value: 4
# calls: add add
from tools import add as plus
import tools
plus(1) + tools.add(1)
