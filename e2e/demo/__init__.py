"""The demo `./dev demo`: both operators at work on embedded planes, shown in a minute.

```
__main__.py     the program
command.py      its options, and how a run ends
story.py        the steps that are shown; uses `DemoBackend` only
backend.py      the protocol of planes that a story runs on
picture.py      tables and bars as text; pure
screen.py       a terminal that is redrawn, or plain lines
environment.py  embedded planes and the operators, as processes
embedded.py     the process of the planes
installing.py   applies `deploy/` and creates two projects
credentials.py  tokens and kubeconfigs of users and operators
uplinks.py      the connection of a city to hub and Milo, which can be cut
real.py         the same protocol on real planes
recording.py    the output in the README
howtos.py       runs the commands of the how-tos
predecessor.py  planes as the Go operators leave them, for the how-to about the switch
```
"""
