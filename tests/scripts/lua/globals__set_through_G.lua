_G.made = "here"
-- next run
-- value: "here"
made
