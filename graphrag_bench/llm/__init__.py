"""Model calls: the contract, the backends, and what makes a call cached, limited, booked and validated."""
