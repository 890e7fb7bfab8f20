"""Reports: summary and charts as Markdown and as one HTML page."""
