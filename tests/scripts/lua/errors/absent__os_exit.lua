-- error: runtime
-- line: 6
-- message: attempt to call a nil value (field 'exit')
-- hint: there is no os.exit; end the script with return

os.exit(0)
