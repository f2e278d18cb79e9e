/** moonbox.languages.registry: the languages whose scripts run here. */

export { LANGUAGES, language } from "../languages.js";
export const DEFAULT_LANGUAGE = "lua";
