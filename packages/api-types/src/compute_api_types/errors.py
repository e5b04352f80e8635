"""The root of every error that this package raises, so that one `except` clause is enough.

    ApiTypesError                   also a ValueError
    ├── MalformedObjectError        a document, arguments or a change make no such object
    ├── TimestampError              a text is no RFC 3339 time
    ├── QuantityError               a value is no Kubernetes quantity
    ├── NamingError                 a name cannot be derived from what was given
    ├── UndecodableIdentityError    a label names no project
    ├── UnstructuralSchemaError     a model cannot be written as a CRD
    └── ImpossibleObjectError       a builder of `testing` was asked for an object that cannot exist

Without one root, a caller that forgets one of them lets it end its process. Admission rules
(`validation`) raise none of these: what is wrong with a Workload is their result, as values.
"""

from __future__ import annotations


class ApiTypesError(ValueError):
    """Anything this package raises on a value from outside; a programming error stays what it is.

    It is a `ValueError`, as each of its children was before it had a root of its own.
    """
