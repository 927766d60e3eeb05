"""The bus: oslo.messaging, serializer, clients and servers derived from the method tables."""
