// Before the first paint: the theme that was chosen, or the one of the system.
"use strict";
{
  let chosen = null;
  try { chosen = localStorage.getItem("regard-theme"); } catch { /* storage may be switched off */ }
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme = chosen ?? (dark ? "dark" : "light");
}
