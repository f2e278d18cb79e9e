// The chosen theme, before anything is painted.
{
  const theme = localStorage.getItem("moonbox-theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
}
