/** `/s/{sale}/room`: the waiting room. Asks for the room document and shows what it means for the place kept here. */
import "./room.css";
import { askTabs, shareSessions } from "../shared/session.ts";
import { Room } from "./room.ts";
import { View } from "./view.ts";

const sale = location.pathname.split("/")[2] ?? "";
const view = new View(sale);
const room = new Room(sale, () => view.show(room));
view.show(room);
room.run();
// Whoever waits here is signed in in another tab too, and the other way round.
shareSessions("buyers");
void askTabs("buyers");
