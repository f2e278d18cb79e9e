-- value: "\"\\\"\\\\\\n\\u0001é\""
json.encode('"\\\n\1é')
