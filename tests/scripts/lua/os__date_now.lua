-- value: true
return os.date("%Y") >= "2024" and #os.date() > 10
