/** What a browser does in its own way. The build puts it in the place of server.ts. */

import { UsageError } from "../errors.js";
import type * as server from "./server.js";
import { webChannel } from "./channel.js";

export const openChannel: typeof server.openChannel = webChannel;

export const ownFile: typeof server.ownFile = () => null;

export const appendText: typeof server.appendText = async () => {
  throw new UsageError("there are no files in a browser: give audit a function that gets each line");
};
