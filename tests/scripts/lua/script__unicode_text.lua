-- value: "grüße 漢字 🎉"
return "grüße 漢字 🎉"
