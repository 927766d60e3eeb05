"""The message bus: interfaces as declared in contract.rpc, served and called over oslo.messaging or in memory."""
