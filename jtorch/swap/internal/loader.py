"""What torch.utils.data._utils says to the parts of a loader."""

import os

HAS_NUMPY = True
IS_WINDOWS = os.name == "nt"
MP_STATUS_CHECK_INTERVAL = 5.0  # seconds between looks at whether the other side is still there
python_exit_status = False
