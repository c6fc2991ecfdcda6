"""The real command line with a scripted engine that greets: what tests of a watch in a process of its own run.

`python -c PROGRAM watch ...`; with `--held` among the arguments no edit ends before it is cancelled.
"""

from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]
PROGRAM = f"""
import sys
sys.path.insert(0, {str(_ROOT)!r})
import app.clients.choose
from tests.support.watch_rig import WatchClient, edit_with
held = "--held" in sys.argv
sys.argv = [argument for argument in sys.argv if argument != "--held"]
def client(*given, **more):
    return WatchClient(edit_with(lambda source: source + "print('hello')\\n"), held=held)
app.clients.choose.choose = client
from app.cli import main
sys.exit(main())
"""
