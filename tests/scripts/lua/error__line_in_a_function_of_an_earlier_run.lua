function broken()
  error("deep")
end
-- next run
-- error: runtime
broken()
