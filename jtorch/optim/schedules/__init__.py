"""The learning-rate schedules by family; `optim.lr_scheduler` is where programs find them."""
