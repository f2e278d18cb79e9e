/** Cross-origin isolation for pages of static files, which cannot send the headers that shared memory needs. */

/**
 * Makes the page cross-origin isolated with the help of the service worker at that address, which must lie in the page's
 * own folder; the page is loaded again once. Resolves when there is nothing (more) to do.
 */
export async function isolate(serviceWorker = "./isolate-service-worker.js"): Promise<void> {
  if (globalThis.crossOriginIsolated !== false || !("serviceWorker" in navigator)) return;
  await navigator.serviceWorker.register(serviceWorker);
  await navigator.serviceWorker.ready;
  if (sessionStorage.getItem("moonbox-isolated") !== null) return; // once is enough: the browser refuses
  sessionStorage.setItem("moonbox-isolated", "1");
  location.reload();
  await new Promise(() => undefined);
}
