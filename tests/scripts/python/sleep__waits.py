# value: 4
sleep(0.01)
sleep_until("2020-01-01T00:00:00Z")
sleep_until(1000000)
4
