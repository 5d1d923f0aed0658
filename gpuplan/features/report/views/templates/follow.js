(function () {
  "use strict";
  var seen = document.currentScript.dataset.state;
  function look() {
    fetch("/state", {cache: "no-store"})
      .then(function (answer) { return answer.text(); })
      .then(function (state) {
        if (state !== seen) { location.reload(); } else { setTimeout(look, 1000); }
      })
      .catch(function () { setTimeout(look, 3000); });
  }
  setTimeout(look, 1000);
})();
