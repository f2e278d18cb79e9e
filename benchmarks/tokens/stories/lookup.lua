return tools.get_weather{city = "Berlin"}
