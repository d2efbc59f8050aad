package scheduled
