// In the page's own folder, so that it may serve the whole page.
importScripts("./moonbox/isolate-service-worker.js");
