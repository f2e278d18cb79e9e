# value: [2.25, 2.0, 2, 1.2583, 2, [1.25, 2.5, 3.75]]
import statistics
from statistics import median, stdev
data = [1, 2, 2, 4]
[statistics.mean(data), median(data), statistics.mode(data), round(stdev(data), 4), statistics.mean([1, 3]), statistics.quantiles([1, 2, 3, 4])]
