-- value: [3, -3, 3, 1, 0, 7]
-- value: [2.68, 1.01, -0.13, 1200, 1300, 0.3, 2.0, 1e300]
return { list.round(2.5), list.round(-2.5), list.round(3.4), list.round(0.5), list.round(0.49999999999999994), list.round(7) },
  { list.round(2.675, 2), list.round(1.005, 2), list.round(-0.125, 2), list.round(1234.5, -2), list.round(1250, -2), list.round(0.25, 1),
    list.round(1.999, 2), list.round(1e300, 9) }
