"""The catalogue of the API database."""

import sqlalchemy as sa

METADATA = sa.MetaData()
