'use strict';
// Role: reads the data of the report, and shows the page of its kind.

{
  const data = JSON.parse(document.getElementById('data').textContent);
  const page = document.getElementById('page');
  page.replaceChildren(...(data.kind === 'sweep' ? sweepPage(data) : runPage(data)).filter((part) => part !== null));
  document.title = `${document.querySelector('h1').textContent} - KiloKV load test`;
  watchMedium();
  drawAll();
}
