"""Where cities are: names and coordinates of the codes that a map can show.

Codes are those of airports, as sites are named. A city with another code is listed beside the map.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final


@dataclass(frozen=True, slots=True)
class Place:
    """A city by its name and its coordinates in degrees, north and east positive."""

    name: str
    latitude: float
    longitude: float


# code, name, latitude, longitude
_TABLE: Final = """
AKL Auckland -36.8 174.8
AMS Amsterdam 52.4 4.9
ARN Stockholm 59.3 18.1
ATH Athens 38.0 23.7
ATL Atlanta 33.7 -84.4
AUS Austin 30.3 -97.7
BCN Barcelona 41.4 2.2
BER Berlin 52.5 13.4
BKK Bangkok 13.8 100.5
BLR Bengaluru 13.0 77.6
BNE Brisbane -27.5 153.0
BOG Bogotá 4.7 -74.1
BOM Mumbai 19.1 72.9
BOS Boston 42.4 -71.1
BRU Brussels 50.8 4.4
BUD Budapest 47.5 19.0
CAI Cairo 30.0 31.2
CDG Paris 48.9 2.4
CGK Jakarta -6.2 106.8
CLT Charlotte 35.2 -80.8
CMH Columbus 40.0 -83.0
CPH Copenhagen 55.7 12.6
CPT Cape_Town -33.9 18.4
DEL Delhi 28.6 77.2
DEN Denver 39.7 -105.0
DFW Dallas 32.8 -96.8
DTW Detroit 42.3 -83.0
DUB Dublin 53.3 -6.3
DUS Düsseldorf 51.2 6.8
DXB Dubai 25.2 55.3
EWR Newark 40.7 -74.2
EZE Buenos_Aires -34.6 -58.4
FCO Rome 41.9 12.5
FRA Frankfurt 50.1 8.7
GRU São_Paulo -23.5 -46.6
HAM Hamburg 53.6 10.0
HEL Helsinki 60.2 24.9
HKG Hong_Kong 22.3 114.2
HND Tokyo 35.7 139.7
HYD Hyderabad 17.4 78.5
IAD Ashburn 39.0 -77.5
IAH Houston 29.8 -95.4
ICN Seoul 37.6 127.0
IST Istanbul 41.0 29.0
JFK New_York 40.7 -74.0
JNB Johannesburg -26.2 28.0
KIX Osaka 34.7 135.5
KUL Kuala_Lumpur 3.1 101.7
LAS Las_Vegas 36.2 -115.1
LAX Los_Angeles 34.1 -118.2
LHR London 51.5 -0.1
LIM Lima -12.0 -77.0
LIS Lisbon 38.7 -9.1
LOS Lagos 6.5 3.4
MAA Chennai 13.1 80.3
MAD Madrid 40.4 -3.7
MAN Manchester 53.5 -2.2
MCI Kansas_City 39.1 -94.6
MEL Melbourne -37.8 145.0
MEX Mexico_City 19.4 -99.1
MIA Miami 25.8 -80.2
MNL Manila 14.6 121.0
MRS Marseille 43.3 5.4
MSP Minneapolis 45.0 -93.3
MUC Munich 48.1 11.6
MXP Milan 45.5 9.2
NBO Nairobi -1.3 36.8
NRT Tokyo 35.7 139.7
ORD Chicago 41.9 -87.6
OSL Oslo 59.9 10.8
OTP Bucharest 44.4 26.1
PDX Portland 45.5 -122.7
PER Perth -31.9 115.9
PHL Philadelphia 40.0 -75.2
PHX Phoenix 33.4 -112.1
PRG Prague 50.1 14.4
QRO Querétaro 20.6 -100.4
RUH Riyadh 24.7 46.7
SCL Santiago -33.4 -70.7
SEA Seattle 47.6 -122.3
SFO San_Francisco 37.8 -122.4
SIN Singapore 1.4 103.8
SJC San_Jose 37.3 -121.9
SLC Salt_Lake_City 40.8 -111.9
SOF Sofia 42.7 23.3
SYD Sydney -33.9 151.2
TLV Tel_Aviv 32.1 34.8
TPE Taipei 25.0 121.6
VIE Vienna 48.2 16.4
WAW Warsaw 52.2 21.0
YUL Montreal 45.5 -73.6
YVR Vancouver 49.3 -123.1
YYZ Toronto 43.7 -79.4
ZRH Zurich 47.4 8.5
"""


def _places() -> dict[str, Place]:
    rows = (line.split() for line in _TABLE.strip().splitlines())
    return {
        code: Place(name.replace("_", " "), float(north), float(east))
        for code, name, north, east in rows
    }


PLACES: Final[Mapping[str, Place]] = MappingProxyType(_places())


def place_of(code: str) -> Place | None:
    """The place of a city code in any case; None for one that the table does not have."""
    return PLACES.get(code.upper())
