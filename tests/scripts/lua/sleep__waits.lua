-- value: 4
sleep(0.01)
sleep_until("2020-01-01T00:00:00Z")
sleep_until(1000000)
return 4
-- next run
-- error: tool
-- line: 4
-- message: write: sleep(seconds), from 0 to 31,622,400 (a year)
sleep(-1)
-- next run
-- error: tool
-- line: 4
-- message: write: sleep_until(time), in seconds like os.time(), or as text: "2027-01-31T08:00:00Z"
sleep_until("tomorrow")
