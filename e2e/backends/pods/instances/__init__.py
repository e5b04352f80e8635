"""Containers of Instances on nodes: the images that scenarios name, and their program.

```
web.py      the program of every image; runs isolated, in the container
asking.py   one HTTP request to a container
images.py   one archive with all images, made of the operators' base and that program
```
"""
