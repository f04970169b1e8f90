"""The report: one page that a browser opens without a network, about a clustering or any labels of a graph.

`words` says in sentences what was found and chosen, `content` gathers what the page shows, `page` puts both into the template
(page.html, page.css, page.js beside it). The page's drawings are plain canvas: a library would be ten times their size.
"""

from corecut.reporting.build import Report as Report, RunNotes as RunNotes, build_report as build_report, report as report
