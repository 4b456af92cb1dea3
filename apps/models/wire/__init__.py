"""The OpenAI chat stream as vendors really send it, made into ChatDeltas. Pure: no network, no database."""
