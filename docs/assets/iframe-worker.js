/* The search of the theme runs in a worker, which browsers forbid for pages that are opened from a folder. There a hidden
   frame takes its place; its name is what the theme's worker looks for. Nothing is loaded from other hosts. */
(function () {
  "use strict";
  if (location.protocol !== "file:") return;

  class IFrameWorker extends EventTarget {
    constructor(url) {
      super();
      this.onmessage = null;
      const frame = document.createElement("iframe");
      frame.hidden = true;
      frame.title = "Search";
      this.ready = new Promise((resolve) => {
        const begin = () => {
          document.body.appendChild(frame);
          this.inside = frame.contentWindow;
          this.inside.postMessage = (data) => this.answer(data);
          const script = this.inside.document.createElement("script");
          script.src = String(url);
          script.onload = resolve;
          this.inside.document.body.appendChild(script);
        };
        if (document.body) begin();
        else addEventListener("DOMContentLoaded", begin);
      });
    }

    answer(data) {
      const event = new MessageEvent("message", { data });
      this.dispatchEvent(event);
      if (this.onmessage) this.onmessage(event);
    }

    postMessage(data) {
      this.ready.then(() => this.inside.dispatchEvent(new MessageEvent("message", { data })));
    }

    terminate() {}
  }

  window.IFrameWorker = IFrameWorker;
  window.Worker = IFrameWorker;
})();
