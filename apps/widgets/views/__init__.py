"""What other sites and their visitors load (``public``), and the owner's pages (``settings``)."""
