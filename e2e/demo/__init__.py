"""The README's first command: the whole chain at work, told in a minute.

```
__main__.py   the program
command.py    its options, and how a run ends
story.py      what is shown, step by step; knows a scene, no process
scene.py      what a story may do and see, in a user's words
picture.py    tables and bars as text; pure
screen.py     a terminal that is redrawn, or plain lines
stage.py      embedded planes and the operators, as processes
embedded.py   the process of the planes
installing.py what is put on them: `deploy/`, and two projects
credentials.py who is known on which of them
uplinks.py    a city's way to the rest of the world, which can be cut
real.py       the same scene on real planes
recording.py  the output in the README
```
"""
